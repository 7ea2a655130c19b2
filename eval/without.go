package eval

import (
	"fmt"
	"strings"

	"hark/recall"
)

// A part of Hark's ranking that can be taken off.
type part struct {
	name string
	what string
	off  func(*Spec)
}

func weights(off func(*recall.Weights)) func(*Spec) {
	return func(s *Spec) { off(&s.Weights) }
}

// parts is the table of ablations: what each name sets to neutral.
func parts() []part {
	return []part{
		{"smoothing", "scores and cosines borrowed from neighbouring messages", weights(func(w *recall.Weights) { w.Context, w.DenseSmooth = 0, 0 })},
		{"context", "the field of the neighbours' words (smoothing of cosines stays)", weights(func(w *recall.Weights) { w.Context = 0 })},
		{"session", "the share of the whole episode in a message's words", weights(func(w *recall.Weights) { w.Session = 0 })},
		{"dense", "vectors: words only", func(s *Spec) { s.Embedder = nil }},
		{"coverage", "less trust in vectors of questions whose words the model does not know", weights(func(w *recall.Weights) { w.DenseCov = 0 })},
		{"role", "people before a wordy assistant", weights(func(w *recall.Weights) { w.Role = 0 })},
		{"question", "the cut for messages that only ask", weights(func(w *recall.Weights) { w.Question, w.AfterQuestion = 0, 0 })},
		{"speaker", "the sender's name as a field, and who is named in the question", weights(func(w *recall.Weights) { w.Sender, w.NamedSender = 0, 0 })},
		{"date", "the date as a field", weights(func(w *recall.Weights) { w.Date = 0 })},
		{"caption", "captions as a field", weights(func(w *recall.Weights) { w.Caption = 0 })},
		{"passages", "the best passage of a long message", weights(func(w *recall.Weights) { w.Pass = 0 })},
		{"identifiers", "whole identifiers beside their parts", weights(func(w *recall.Weights) { w.Ident = 0 })},
		{"phrases", "adjacent words", weights(func(w *recall.Weights) { w.Phrase = 0 })},
		{"grams", "character 4-grams of languages other than English", weights(func(w *recall.Weights) { w.Gram = 0 })},
		{"pairs", "pairs of Han characters (single ones count fully instead)", weights(func(w *recall.Weights) { w.Han, w.HanPair = 1, 0 })},
		{"instructions", "the lower weight of words that address the assistant", weights(func(w *recall.Weights) { w.Instruction = 1 })},
		{"look", "the network's second look at the best candidates", weights(func(w *recall.Weights) { w.Look = 0 })},
		{"recency", "nothing: the ranking gives age no weight, so this changes no figure", func(*Spec) {}},
	}
}

// take takes a part off.
func (s *Spec) take(name string) error {
	var names []string
	for _, p := range parts() {
		if p.name == name {
			p.off(s)
			return nil
		}
		names = append(names, p.name)
	}
	return fmt.Errorf("unknown part %q: hark can be tested without %s", name, strings.Join(names, ", "))
}

// Parts lists the names of the ablations and what each takes off, for a help text.
func Parts() [][2]string {
	var out [][2]string
	for _, p := range parts() {
		out = append(out, [2]string{p.name, p.what})
	}
	return out
}

// textbook is Okapi BM25 over stemmed words of the text, with the customary k1 and b: no fields, no
// neighbours, no vectors.
func textbook(w recall.Weights) recall.Weights {
	return recall.Weights{
		K1: 1.2, B: 0.75, PassB: 0.75, IdfPow: 1, Word: 1, HanPair: 1, Instruction: 1,
		ContextLen: w.ContextLen, ContextB: w.ContextB, SessionB: w.SessionB, CohesionFull: w.CohesionFull,
		LexicalPool: w.LexicalPool, DensePool: w.DensePool,
	}
}

// onlyMeaning ranks by vectors alone.
func onlyMeaning(w recall.Weights) recall.Weights {
	return recall.Weights{
		K1: w.K1, B: w.B, PassB: w.PassB, Pad: w.Pad, IdfPow: w.IdfPow,
		ContextLen: w.ContextLen, ContextB: w.ContextB, SessionB: w.SessionB, CohesionFull: w.CohesionFull,
		Dense: 1, LexicalPool: 1, DensePool: w.DensePool,
	}
}
