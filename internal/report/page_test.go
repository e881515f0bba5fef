package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func page(t *testing.T, r Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Page(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageIsSelfContained(t *testing.T) {
	text := page(t, judged(t))
	if len(text) >= 1_000_000 {
		t.Errorf("%d bytes", len(text))
	}
	// Whatever could make a browser ask someone else.
	for _, bad := range []string{"http://", "https://", "<link", "<img", "<iframe", "@import", "url(", " src=", " href="} {
		if strings.Contains(text, bad) {
			t.Errorf("it contains %s", bad)
		}
	}
	for _, want := range []string{"prefers-color-scheme: dark", "Content-Security-Policy", `name="viewport"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestPageOrder(t *testing.T) {
	text := page(t, judged(t))
	at := 0
	for _, want := range []string{"Verdict: 1 of 5 claims broken", ">BROKEN<", ">not provable<", "the host was busy",
		"full line / alone", "Copy time", "<svg class=\"wide\"", "cubic", "weir lab run ssh", `id="result"`} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing or too early", want)
		}
		at += i
	}
}

// TestPageHoldsTheResult makes the page anew from what is inside of it.
func TestPageHoldsTheResult(t *testing.T) {
	r := judged(t)
	r.Claims[0].Evidence = `</script><b onclick="alert(1)">&`
	text := page(t, r)
	raw := regexp.MustCompile(`(?s)<script type="application/json" id="result">(.*?)</script>`).FindStringSubmatch(text)
	if raw == nil {
		t.Fatal("no result inside")
	}
	var back Result
	if err := json.Unmarshal([]byte(raw[1]), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Error(diff)
	}
	if again := page(t, back); again != text {
		t.Error("the page made from its own data differs")
	}
	if strings.Contains(text, "<b onclick") {
		t.Error("evidence is not escaped")
	}
}

// TestPageIsWellFormed reads the page as a strict reader does: every element
// closed, in order.
func TestPageIsWellFormed(t *testing.T) {
	decoder := xml.NewDecoder(strings.NewReader(page(t, judged(t))))
	decoder.Strict = false
	decoder.AutoClose = []string{"meta"}
	decoder.Entity = xml.HTMLEntity
	open := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch token.(type) {
		case xml.StartElement:
			open++
		case xml.EndElement:
			open--
		}
	}
	if open != 0 {
		t.Errorf("%d elements are open at the end", open)
	}
}

func TestPageWithoutExtras(t *testing.T) {
	r := sample(t)
	r.About, r.Environment, r.Published, r.Series, r.Warnings = nil, nil, nil, nil, nil
	text := page(t, r)
	for _, bad := range []string{"Over time", "Do it again", "published</th>", "Warning"} {
		if strings.Contains(text, bad) {
			t.Errorf("it shows %q without having it", bad)
		}
	}
	if !strings.Contains(text, "copy seconds") {
		t.Error("a metric without a label is shown by its name")
	}
}

func TestPageSaysWhichCPUs(t *testing.T) {
	for want, e := range map[string]Environment{
		"2":                           {CPUs: 2},
		"2, kept from sleeping":       {CPUs: 2, Awake: true},
		"2 of Z1":                     {CPUs: 2, Processor: "Z1"},
		"2 of Z1, kept from sleeping": {CPUs: 2, Processor: "Z1", Awake: true},
		"Retpolines":                  {CPUs: 2, Mitigation: "Retpolines"},
	} {
		r := sample(t)
		r.Environment = &e
		if text := page(t, r); !strings.Contains(text, "<dd>"+want+"</dd>") {
			t.Errorf("%+v: it does not say %q", e, want)
		}
	}
}

// TestPageRefusesWhatIsNoNumber ends where a scale up to infinity would not.
func TestPageRefusesWhatIsNoNumber(t *testing.T) {
	for _, value := range []float64{math.Inf(1), math.NaN()} {
		r := sample(t)
		r.Series[0].Samples[0][1] = value
		if err := Page(io.Discard, r); err == nil || !strings.Contains(err.Error(), "encode result of lab ssh") {
			t.Errorf("%g: %v", value, err)
		}
	}
}

func TestMetricViewAxis(t *testing.T) {
	v := newMetricView(Result{Arms: []Arm{
		{Name: "a", Metrics: map[string]Metric{"m": {Median: 5, Min: 4, Max: 10, N: 3}}},
		{Name: "b", Metrics: map[string]Metric{"m": {Median: 0, Min: 0, Max: 0, N: 3}}},
		{Name: "c"},
	}}, "m")
	if len(v.Rows) != 2 || v.Rows[0].At != 50 || v.Rows[0].From != 40 || v.Rows[0].To != 100 || v.Rows[1].At != 0 {
		t.Errorf("got %+v", v.Rows)
	}
}
