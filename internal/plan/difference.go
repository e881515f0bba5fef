package plan

import "fmt"

// An Op says what happens to an object.
type Op string

// What can happen to an object.
const (
	Add    Op = "+"
	Change Op = "~"
	Remove Op = "-"
)

// A Difference is one object that is not as it shall be, in words: what plan
// prints, what apply makes true, and what status calls drift.
type Difference struct {
	Op     Op     `json:"op"`
	Object string `json:"object"` // "link eth1", "workload ssh", "default", …
	// Detail is only what changes. Of a change it says what is ("class 3 is
	// missing"), or what is and what shall be ("priority 3 -> 6"), and not what to
	// do: it is the evidence of the promises that it breaks.
	Detail string `json:"detail"`
}

// String returns the line that plan prints.
func (d Difference) String() string { return fmt.Sprintf("%s %s: %s", d.Op, d.Object, d.Detail) }

// Summary is the last line of a plan.
func Summary(d []Difference) string {
	if len(d) == 0 {
		return "No changes."
	}
	count := map[Op]int{}
	for _, x := range d {
		count[x.Op]++
	}
	return fmt.Sprintf("Plan: %d to add, %d to change, %d to remove.", count[Add], count[Change], count[Remove])
}
