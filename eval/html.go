package eval

import "io"

func WriteHTML(w io.Writer, rep *Report, t Timing) error { return nil }
