package report

import "fmt"

// SchemaVersion is the version of the JSON form of a Result. It changes in its
// first number when a reader of the old form could be misled by the new one.
const SchemaVersion = "1.0"

// A Result is the outcome of one lab. All that the table and the page show
// comes from it, so both can be made again from its JSON alone.
type Result struct {
	SchemaVersion string           `json:"schema_version"`
	Lab           string           `json:"lab"`
	Version       string           `json:"version"` // of Weir
	Kernel        string           `json:"kernel"`  // release, as uname prints it
	Started       string           `json:"started"` // RFC 3339
	Seconds       float64          `json:"seconds"` // wall time of the whole lab
	Arms          []Arm            `json:"arms"`
	Ratios        map[string]Ratio `json:"ratios"`
	Claims        []Claim          `json:"claims"`

	About       *About       `json:"about,omitempty"`
	Environment *Environment `json:"environment,omitempty"`
	Published   []Published  `json:"published,omitempty"`
	Warnings    []string     `json:"warnings,omitempty"`
	Series      []Series     `json:"series,omitempty"`
}

// An Arm is one of the situations that a lab compares.
type Arm struct {
	Name    string            `json:"name"`
	Metrics map[string]Metric `json:"metrics"`
}

// A Metric sums up the samples of one quantity in one arm.
type Metric struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"` // number of samples
	Unit   string  `json:"unit"`
}

// A Ratio compares two arms whose repetitions were run in turn. Value is the
// median of the ratios of each pair, Low and High are the smallest and the
// largest of them.
type Ratio struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Pairs  int     `json:"pairs,omitzero"`
	Median Bounds  `json:"median,omitzero"`
}

// Bounds are between which two samples the true median lies, with a confidence of 95 % or more if there are six of them;
// of fewer than nine these are the smallest and the largest.
type Bounds struct {
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}

// A Claim is a sentence that the lab set out to prove.
type Claim struct {
	Text     string `json:"text"`
	Kept     *bool  `json:"kept"` // null: could not be proven here, Evidence says why
	Evidence string `json:"evidence"`
}

// Kept makes a Claim that was decided.
func Kept(text string, kept bool, evidence string) Claim {
	return Claim{Text: text, Kept: &kept, Evidence: evidence}
}

// Unproven makes a Claim that could be decided neither way.
func Unproven(text, why string) Claim { return Claim{Text: text, Evidence: why} }

// About holds the words that introduce a lab and its metrics, the metrics in
// the order in which they are shown.
type About struct {
	Title   string  `json:"title"`
	Summary string  `json:"summary,omitempty"`
	Metrics []Label `json:"metrics,omitempty"`
	Ratios  []Label `json:"ratios,omitempty"`
}

// A Label is what people read in place of a metric's or a ratio's name.
type Label struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Environment is where and how a result was measured.
type Environment struct {
	CPUs        int    `json:"cpus"`
	Processor   string `json:"processor,omitempty"`  // their model, as the kernel has it
	Mitigation  string `json:"mitigation,omitempty"` // of Spectre v2: calls of programs are not free of it
	Awake       bool   `json:"awake,omitempty"`      // none of those sleeps meanwhile
	Kernel      string `json:"kernel"`
	Rung        string `json:"rung"` // the mechanism that was proven, in a phrase
	Rate        string `json:"rate"` // of the bottleneck, "100 Mbit/s"
	Repetitions int    `json:"repetitions"`
	Congestion  string `json:"congestion,omitempty"` // TCP congestion control of the senders
	Bottleneck  string `json:"bottleneck,omitempty"` // the queue of the arms without Weir
	Command     string `json:"command"`              // repeats the run
	Policy      string `json:"policy,omitempty"`     // the policy file that was applied
}

func (e Environment) processors() string {
	words := fmt.Sprint(e.CPUs)
	if e.Processor != "" {
		words += " of " + e.Processor
	}
	if e.Awake {
		words += ", kept from sleeping"
	}
	return words
}

// Published is a figure that a lab reproduces, as its authors gave it.
type Published struct {
	Arm    string  `json:"arm"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Source string  `json:"source"` // where it was published, and its circumstances
}

// A Series is one line of a plot: raw samples over time.
type Series struct {
	Plot       string       `json:"plot"` // heading of the plot it belongs to
	Name       string       `json:"name"` // what the legend says
	Arm        string       `json:"arm"`
	Repetition int          `json:"repetition"` // from 1
	Unit       string       `json:"unit"`
	Samples    [][2]float64 `json:"samples"` // seconds, value
	Marks      []Mark       `json:"marks,omitempty"`
}

// A Mark is a moment in a Series that deserves a line and a word.
type Mark struct {
	Seconds float64 `json:"seconds"`
	Text    string  `json:"text"`
}
