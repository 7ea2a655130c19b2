package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// The chart's box and the area inside its axes.
const (
	chartW, chartH                             = 760.0, 440.0
	chartLeft, chartRight, chartTop, chartBase = 64.0, 590.0, 56.0, 380.0
	chartStyle                                 = `svg{font:13px system-ui,-apple-system,"Segoe UI",sans-serif}.page{fill:#fff}.ink{fill:#1b1f24}.faint{fill:#59636e}.grid{stroke:#d8dee4}.axis{stroke:#818b98}` +
		`.line{fill:none;stroke-width:2.5;stroke-linejoin:round}.a{stroke:#0b62d6}.b{stroke:#b4440b}.c{stroke:#0b62d6;stroke-dasharray:2 5;stroke-linecap:round}.d{stroke:#b4440b;stroke-dasharray:2 5;stroke-linecap:round}` +
		`.r{stroke:#818b98;stroke-dasharray:7 5;stroke-width:1.5}.dot{stroke-dasharray:none;stroke-width:2;fill:#fff}.title{font-size:15px;font-weight:600}` +
		`@media (prefers-color-scheme:dark){.page,.dot{fill:#0d1117}.ink{fill:#f0f6fc}.faint{fill:#9198a1}.grid{stroke:#2a313c}.axis{stroke:#656c76}.a,.c{stroke:#58a6ff}.b,.d{stroke:#f0883e}}`
)

// chartLine is one curve: a value for every size.
type chartLine struct {
	name, class string
	value       func(benchResult) float64
}

// benchChart draws the latency of a search against the size of the store, both axes logarithmic,
// with the slope of linear growth beside it. It follows the reader's light or dark setting.
func benchChart(r benchReport) []byte {
	lines := []chartLine{
		{"p95, wall", "d", func(b benchResult) float64 { return b.SearchP95 }},
		{"p95, processor", "b", func(b benchResult) float64 { return b.SearchCPUP95 }},
		{"p50, wall", "c", func(b benchResult) float64 { return b.SearchP50 }},
		{"p50, processor", "a", func(b benchResult) float64 { return b.SearchCPUP50 }},
	}
	c := newBenchCanvas(r, lines)
	c.frame(r)
	c.linear(r)
	c.curves(r, lines)
	c.add("</svg>\n")
	return c.Bytes()
}

// benchCanvas is a chart being drawn; x and y hold decades.
type benchCanvas struct {
	bytes.Buffer
	x0, x1, y0, y1 float64
}

func newBenchCanvas(r benchReport, lines []chartLine) *benchCanvas {
	c := &benchCanvas{x0: math.Inf(1), x1: math.Inf(-1), y0: math.Inf(1), y1: math.Inf(-1)}
	for _, res := range r.Results {
		x := math.Log10(float64(res.Messages))
		c.x0, c.x1 = min(c.x0, x), max(c.x1, x)
		for _, l := range lines {
			if v := l.value(res); v > 0 {
				c.y0, c.y1 = min(c.y0, math.Log10(v)), max(c.y1, math.Log10(v))
			}
		}
	}
	if c.x0 == c.x1 || math.IsInf(c.x0, 0) {
		mid := c.x0
		if math.IsInf(mid, 0) {
			mid = 4
		}
		c.x0, c.x1 = mid-.5, mid+.5
	}
	if math.IsInf(c.y0, 0) {
		c.y0, c.y1 = 0, 1
	}
	c.y0, c.y1 = math.Floor(c.y0), max(math.Ceil(c.y1), math.Floor(c.y0)+1)
	return c
}

func (c *benchCanvas) add(format string, args ...any) { _, _ = fmt.Fprintf(&c.Buffer, format, args...) } // a Buffer does not fail

func (c *benchCanvas) atX(n float64) float64 {
	return chartLeft + 24 + (chartRight-chartLeft-48)*(math.Log10(n)-c.x0)/(c.x1-c.x0)
}

func (c *benchCanvas) atY(ms float64) float64 {
	return chartBase - (chartBase-chartTop)*(math.Log10(ms)-c.y0)/(c.y1-c.y0)
}

// frame draws the title, the axes and what stands at them.
func (c *benchCanvas) frame(r benchReport) {
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-labelledby="t"><style>%s</style>`+"\n",
		chartW, chartH, chartW, chartH, chartStyle)
	c.add(`<title id="t">Time of a search against the messages stored</title><rect class="page" width="%g" height="%g"/>`+"\n", chartW, chartH)
	c.add(`<text class="ink title" x="%g" y="26">Time of a search against the messages stored</text>`+"\n", chartLeft)
	c.add(`<text class="faint" x="%g" y="44">milliseconds; %s, %d CPUs</text>`+"\n", chartLeft, xmlText(r.CPU), r.CPUs)
	for d := c.y0; d <= c.y1; d++ {
		y := c.atY(math.Pow(10, d))
		c.add(`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text class="faint" x="%g" y="%.1f" text-anchor="end">%s</text>`+"\n",
			chartLeft, chartRight, y, y, chartLeft-8, y+4.5, strconv.FormatFloat(math.Pow(10, d), 'g', -1, 64))
		for _, m := range []float64{2, 5} {
			if y := c.atY(m * math.Pow(10, d)); d < c.y1 {
				c.add(`<line class="grid" stroke-opacity=".45" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text class="faint" x="%g" y="%.1f" text-anchor="end" font-size="11">%s</text>`+"\n",
					chartLeft, chartRight, y, y, chartLeft-8, y+4, strconv.FormatFloat(m*math.Pow(10, d), 'g', 4, 64))
			}
		}
	}
	c.add(`<line class="axis" x1="%g" x2="%g" y1="%g" y2="%g"/>`+"\n", chartLeft, chartRight, chartBase, chartBase)
	for _, res := range r.Results {
		x := c.atX(float64(res.Messages))
		c.add(`<line class="axis" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/><text class="faint" x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n",
			x, x, chartBase, chartBase+5, x, chartBase+21, thousands(res.Messages))
	}
	c.add(`<text class="faint" x="%g" y="%g" text-anchor="middle">messages stored</text>`+"\n", (chartLeft+chartRight)/2, chartBase+44)
}

// linear draws where the median would be if a search cost as many times more as there are messages.
func (c *benchCanvas) linear(r benchReport) {
	if len(r.Results) < 2 || r.Results[0].SearchCPUP50 <= 0 {
		return
	}
	first, last := r.Results[0], r.Results[len(r.Results)-1]
	from, to := float64(first.Messages), float64(last.Messages)
	end := first.SearchCPUP50 * to / from
	if top := math.Pow(10, c.y1); end > top {
		to, end = from*top/first.SearchCPUP50, top
	}
	x, y := c.atX(to), c.atY(end)
	c.add(`<line class="r" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", c.atX(from), x, c.atY(first.SearchCPUP50), y)
	c.add(`<text class="faint" x="%.1f" y="%.1f" text-anchor="end" font-size="12">linear growth</text>`+"\n", x-20, y+3)
}

// curves draws the lines with their names at the right, moved apart where they would overlap.
func (c *benchCanvas) curves(r benchReport, lines []chartLine) {
	label := math.Inf(-1)
	for _, l := range lines {
		points, dots, last, value := "", "", 0.0, 0.0
		for _, res := range r.Results {
			v := l.value(res)
			if v <= 0 {
				continue
			}
			x, y := c.atX(float64(res.Messages)), c.atY(v)
			points += fmt.Sprintf("%.1f,%.1f ", x, y)
			dots += fmt.Sprintf(`<circle class="dot %s" cx="%.1f" cy="%.1f" r="4"><title>%s messages, %s: %.1f ms</title></circle>`, l.class[:1], x, y, thousands(res.Messages), l.name, v)
			last, value = y, v
		}
		if points == "" {
			continue
		}
		label = max(last, label+18)
		c.add(`<polyline class="line %s" points="%s"/>%s`+"\n", l.class, points[:len(points)-1], dots)
		c.add(`<text class="ink" x="%g" y="%.1f">%s  %.1f</text>`+"\n", chartRight+8, label+4.5, l.name, value)
	}
}

// thousands spells a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// xmlText escapes text for an XML document.
func xmlText(s string) string {
	var b bytes.Buffer
	for _, r := range s {
		switch r {
		case '<':
			b.WriteString("&lt;")
		case '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
