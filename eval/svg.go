package eval

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// A plot is drawn in a box of plotW by plotH units with room for labels; the page scales it. At
// the width of a phone a unit is about a pixel.
const (
	plotW, plotH           = 360.0, 210.0
	left, right, top, base = 34.0, 350.0, 14.0, 172.0 // of the area inside the axes
)

// bar is a bar from 0 to 1 with its interval. Its text stands beside it, so it may be stretched.
func bar(e Estimate) template.HTML {
	var b strings.Builder
	x := func(v float64) float64 { return 100 * min(1, max(0, finite(v))) }
	_, _ = fmt.Fprintf(&b, `<svg class="bar" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="12"/>`+
		`<rect class="fill" width="%.2f" height="12"/><line class="whisker" x1="%.2f" x2="%.2f" y1="6" y2="6"/>`+
		`<line class="whisker" x1="%.2f" x2="%.2f" y1="2.5" y2="9.5"/><line class="whisker" x1="%.2f" x2="%.2f" y1="2.5" y2="9.5"/></svg>`,
		x(e.Mean), x(e.Low), x(e.High), x(e.Low), x(e.Low), x(e.High), x(e.High)) // a Builder does not fail
	return html(&b)
}

// canvas begins a plot with a vertical axis from 0 to 100 %.
type canvas struct {
	strings.Builder
}

func (c *canvas) add(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) } // a Builder does not fail

func newCanvas(title string) *canvas {
	c := &canvas{}
	c.add(`<svg class="plot" viewBox="0 0 %g %g" role="img"><title>%s</title>`, plotW, plotH, esc(title))
	return c
}

func (c *canvas) percentAxis(most float64) {
	for _, p := range []float64{0, .25, .5, .75, 1} {
		y := yOf(p)
		c.add(`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text>`,
			left, right, y, y, left-5, y+3.5, axisNumber(100*p*most)+map[bool]string{true: "%"}[p == 1])
	}
}

func axisNumber(v float64) string {
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func (c *canvas) end() template.HTML {
	c.WriteString(`</svg>`)
	return html(&c.Builder)
}

// yOf places a share.
func yOf(share float64) float64 { return base - (base-top)*min(1, max(0, finite(share))) }

// legend names the lines under a plot.
func (c *canvas) legend(items ...[2]string) {
	x := left
	for _, it := range items {
		c.add(`<rect class="%s key" x="%.1f" y="%g" width="9" height="9" rx="2"/><text class="tick" x="%.1f" y="%g">%s</text>`, it[0], x, plotH-11, x+13, plotH-3, esc(it[1]))
		x += 13 + 5.6*float64(len([]rune(it[1]))) + 12
	}
}

// budgetPlot draws recall and false recall against the budget; every step to the right doubles it.
func budgetPlot(rep *Report) template.HTML {
	c := newCanvas("Evidence in the context against its budget")
	c.percentAxis(1)
	budgets := Budgets()
	x := func(i int) float64 { return left + 16 + (right-left-32)*float64(i)/float64(len(budgets)-1) }
	for i, b := range budgets {
		c.add(`<text class="tick" x="%.1f" y="%g" text-anchor="middle">%s</text>`, x(i), base+14, strings.TrimPrefix(At("", b), " "))
	}
	var keys [][2]string
	for _, line := range []struct{ name, label, class string }{
		{"budget recall", "evidence", "one"}, {"window recall", "by the window", "three"}, {"precision", "precision", "four"}, {"false recall", "false recall", "two"},
	} {
		var path, upper, lower []string
		drawn := false
		for i, b := range budgets {
			m, ok := rep.Metric(At(line.name, b))
			if !ok {
				continue
			}
			drawn = drawn || m.Micro.Mean > 0 || line.name != "window recall"
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(i), yOf(m.Micro.Mean)))
			upper = append(upper, fmt.Sprintf("%.1f,%.1f", x(i), yOf(m.Micro.High)))
			lower = append([]string{fmt.Sprintf("%.1f,%.1f", x(i), yOf(m.Micro.Low))}, lower...)
		}
		if !drawn || len(path) == 0 {
			continue
		}
		c.add(`<polygon class="%s band" points="%s"/><polyline class="%s line" points="%s"/>`, line.class, strings.Join(append(upper, lower...), " "), line.class, strings.Join(path, " "))
		for _, p := range path {
			px, py, _ := strings.Cut(p, ",")
			c.add(`<circle class="%s dot" cx="%s" cy="%s" r="2.6"/>`, line.class, px, py)
		}
		keys = append(keys, [2]string{line.class, line.label})
	}
	c.legend(keys...)
	return c.end()
}

// confidencePlot draws how the confidence is spread over questions with and without an answer.
func confidencePlot(rep *Report) template.HTML {
	const bins = 20
	var with, without [bins]float64
	nWith, nWithout := 0.0, 0.0
	for _, o := range rep.Outcomes {
		i := min(bins-1, max(0, int(o.Confidence*bins)))
		if o.Negative {
			without[i]++
			nWithout++
		} else {
			with[i]++
			nWith++
		}
	}
	most := 0.0
	for i := range bins {
		with[i] /= max(1, nWith)
		without[i] /= max(1, nWithout)
		most = max(most, with[i], without[i])
	}
	most = max(.04, math.Ceil(most*25)/25)
	c := newCanvas("Confidence of questions with and without an answer")
	c.percentAxis(most)
	width := (right - left) / bins
	for i := range bins {
		for j, s := range []struct {
			v     float64
			class string
		}{{with[i], "one"}, {without[i], "two"}} {
			if s.v > 0 {
				y := yOf(s.v / most)
				c.add(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, s.class, left+width*float64(i)+1+float64(j)*(width-2)/2, y, (width-2)/2, base-y)
			}
		}
	}
	for _, v := range []float64{0, .25, .5, .75, 1} {
		c.add(`<text class="tick" x="%.1f" y="%g" text-anchor="middle">%g</text>`, left+(right-left)*v, base+14, v)
	}
	c.legend([2]string{"one", fmt.Sprintf("answerable (%.0f)", nWith)}, [2]string{"two", fmt.Sprintf("unanswerable (%.0f)", nWithout)})
	return c.end()
}

// latencyPlot draws how the times are spread, on a logarithmic axis.
func latencyPlot(t Timing) template.HTML {
	if len(t.Rank) == 0 {
		return ""
	}
	const bins = 28
	lo, hi := math.Inf(1), 0.0
	for _, v := range [][]float64{t.Rank, t.Assemble} {
		lo, hi = min(lo, max(.05, v[0])), max(hi, v[len(v)-1])
	}
	from, to := math.Floor(math.Log10(lo)*2)/2, math.Ceil(math.Log10(max(hi, lo*2))*2)/2
	at := func(ms float64) float64 { return (math.Log10(max(ms, lo)) - from) / (to - from) }
	var count [2][bins]float64
	most := 0.0
	for k, v := range [][]float64{t.Rank, t.Assemble} {
		for _, ms := range v {
			i := min(bins-1, int(at(ms)*bins))
			count[k][i] += 1 / float64(len(v))
			most = max(most, count[k][i])
		}
	}
	most = max(.04, math.Ceil(most*25)/25)
	c := newCanvas("How long a search and an assembled context took")
	c.percentAxis(most)
	width := (right - left) / bins
	for k, class := range []string{"one", "two"} {
		var pts []string
		for i, v := range count[k] {
			x, y := left+width*float64(i), yOf(v/most)
			pts = append(pts, fmt.Sprintf("%.1f,%.1f %.1f,%.1f", x, y, x+width, y))
		}
		line := strings.Join(pts, " ")
		c.add(`<polygon class="%s band" points="%g,%g %s %g,%g"/><polyline class="%s line" points="%s"/>`, class, left, base, line, right, base, class, line)
	}
	for e := math.Ceil(from); e <= to; e++ {
		x := left + (right-left)*(e-from)/(to-from)
		label := fmt.Sprintf("%g ms", math.Pow(10, e))
		if e >= 3 {
			label = fmt.Sprintf("%g s", math.Pow(10, e-3))
		}
		c.add(`<text class="tick" x="%.1f" y="%g" text-anchor="middle">%s</text>`, min(x, right-10), base+14, label)
	}
	for k, v := range [][]float64{t.Rank, t.Assemble} {
		x := left + (right-left)*at(quantile(v, .95))
		c.add(`<line class="%s mark" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/>`, []string{"one", "two"}[k], x, x, top, base)
	}
	c.legend([2]string{"one", "search"}, [2]string{"two", fmt.Sprintf("assemble at %d tokens", ReferenceBudget)})
	return c.end()
}
