// Package fit fits the network of recall's second look to labelled questions, and says by
// cross-validation what that is worth on conversations it has not seen.
//
// The same questions and options give the same network, on any number of processors.
package fit

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"

	"hark/eval"
	"hark/recall"
)

// Options are the tunables; nil and zero fields mean the defaults, which were chosen by
// cross-validation over ten sets on 2026-12-01. One network of 32 units and three of 16 were compared with
// hark eval fit (BEAM's R@10 fell by .8 with the one and rose by 1.4 with the three; elsewhere they
// differ by up to a point); 8 and 20 epochs and decays of .01 and .1 with a prototype of it.
type Options struct {
	Nets   int     // fitted from different beginnings and averaged, which is one network again; default 3
	Units  int     // of the hidden layer of each; default 16
	Epochs int     // default 20
	Rate   float64 // of learning, at the start; it falls by a cosine; default .001
	Decay  float64 // of the weights, times the rate; default .01
	Seed   uint64  // default 1
	// Progress is told how many of all epochs are done; nil where nobody looks.
	Progress func(done, of int)
}

func (o Options) complete() Options {
	if o.Nets <= 0 {
		o.Nets = 3
	}
	if o.Units <= 0 {
		o.Units = 16
	}
	if o.Epochs <= 0 {
		o.Epochs = 20
	}
	if o.Rate <= 0 {
		o.Rate = 1e-3
	}
	if o.Decay <= 0 {
		o.Decay = 1e-2
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	return o
}

const (
	batch  = 16 // questions a step
	shards = 4  // parts of a batch whose gradients are added in order, whatever the processors
	depth  = 30 // ranks that count fully; deeper ones count deepShare
	deep   = 0.3
	weigh  = 400 // questions of a set up to which it counts more than in proportion
)

// Train fits a network with LambdaRank (Burges, 2010: the gradient of a pair is what swapping it would
// change in nDCG) and Adam (Kingma and Ba, 2015). Sets count by the root of their questions, so that a
// large one does not decide alone.
func Train(ctx context.Context, qs []eval.Labelled, o Options) (*recall.Net, error) {
	o = o.complete()
	var all *recall.Net
	for i := range o.Nets {
		one, err := train(ctx, qs, o, o.Seed+uint64(i), i*o.Epochs)
		if err != nil {
			return nil, err
		}
		all = join(all, one, float32(o.Nets))
	}
	shorten(all)
	return all, nil
}

// join adds the nth part of a network to a sum of such.
func join(sum, net *recall.Net, n float32) *recall.Net {
	if sum == nil {
		sum = &recall.Net{Features: net.Features, Mean: net.Mean, SD: net.SD, Linear: make([]float32, len(net.Linear))}
	}
	for i, w := range net.Linear {
		sum.Linear[i] += w / n
	}
	for _, w := range net.Output {
		sum.Output = append(sum.Output, w/n)
	}
	sum.Hidden, sum.Bias = append(sum.Hidden, net.Hidden...), append(sum.Bias, net.Bias...)
	return sum
}

func train(ctx context.Context, qs []eval.Labelled, o Options, seed uint64, before int) (*recall.Net, error) {
	o.Seed = seed
	t := newTrainer(qs, o)
	rng := rand.New(rand.NewPCG(seed, 0))
	order := make([]int, len(t.qs))
	for i := range order {
		order[i] = i
	}
	for epoch := range o.Epochs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		rate := o.Rate / 2 * (1 + math.Cos(math.Pi*float64(epoch)/float64(o.Epochs)))
		for at := 0; at < len(order); at += batch {
			t.step(order[at:min(at+batch, len(order))], rate)
		}
		if o.Progress != nil {
			o.Progress(before+epoch+1, o.Nets*o.Epochs)
		}
	}
	return t.net(), nil
}

// trainer holds the network while it is fitted, flat.
type trainer struct {
	opts          Options
	n, units      int
	qs            []sample
	mean, sd      []float32
	w             []float32 // hidden units × features, biases, outputs, linear
	m, v          []float32 // Adam's moments
	gradient      [shards][]float32
	steps         int
	bias, out, li int // where these begin in w
}

// sample is a question ready for training.
type sample struct {
	z       []float32 // standardised features, a row a candidate
	fused   []float64
	answers []bool
	ideal   float64 // DCG of the answers on top
	weight  float64
}

func newTrainer(qs []eval.Labelled, o Options) *trainer {
	n := len(recall.FeatureNames())
	t := &trainer{opts: o, n: n, units: o.Units, bias: o.Units * n}
	t.out, t.li = t.bias+o.Units, t.bias+2*o.Units
	size := t.li + n
	t.w, t.m, t.v = make([]float32, size), make([]float32, size), make([]float32, size)
	for i := range t.gradient {
		t.gradient[i] = make([]float32, size)
	}
	sets := map[string]float64{}
	for _, q := range qs {
		sets[q.Set]++
	}
	t.scale(qs, sets)
	norm := &recall.Net{Mean: t.mean, SD: t.sd}
	for _, q := range qs {
		s := sample{answers: q.Answers, weight: math.Sqrt(weigh / sets[q.Set])}
		found := 0
		for i, c := range q.Candidates {
			z := make([]float32, n)
			norm.Standardise(c.Features, z)
			s.z, s.fused = append(s.z, z...), append(s.fused, c.Score)
			if q.Answers[i] {
				if found < depth {
					s.ideal += discount(found)
				}
				found++
			}
		}
		if found > 0 && found < len(q.Candidates) {
			t.qs = append(t.qs, s)
		}
	}
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	for i := range t.bias {
		t.w[i] = float32(rng.NormFloat64() / math.Sqrt(float64(n)))
	}
	for i := t.out; i < t.li; i++ {
		t.w[i] = float32(rng.NormFloat64() / 100) // next to nothing: it begins as the fused order
	}
	return t
}

// scale finds the mean and spread of the features, every set counting the same.
func (t *trainer) scale(qs []eval.Labelled, sets map[string]float64) {
	sum, sq, all := make([]float64, t.n), make([]float64, t.n), 0.0
	for _, q := range qs {
		w := 1 / sets[q.Set] / math.Max(1, float64(len(q.Candidates)))
		for _, c := range q.Candidates {
			for i, x := range c.Features {
				sum[i] += w * float64(x)
				sq[i] += w * float64(x) * float64(x)
			}
			all += w
		}
	}
	t.mean, t.sd = make([]float32, t.n), make([]float32, t.n)
	for i := range sum {
		m := sum[i] / math.Max(all, 1e-9)
		t.mean[i] = float32(m)
		t.sd[i] = float32(math.Sqrt(math.Max(1e-8, sq[i]/math.Max(all, 1e-9)-m*m)))
	}
}

// discount is what a rank, from 0, is worth.
func discount(rank int) float64 {
	d := 1 / math.Log2(float64(rank+2))
	if rank >= depth {
		d *= deep
	}
	return d
}

// step moves the weights by one batch.
func (t *trainer) step(of []int, rate float64) {
	var wg sync.WaitGroup
	for s := range shards {
		wg.Go(func() {
			clear(t.gradient[s])
			for i := s; i < len(of); i += shards {
				t.learn(&t.qs[of[i]], t.gradient[s])
			}
		})
	}
	wg.Wait()
	t.steps++
	c1, c2 := 1-math.Pow(.9, float64(t.steps)), 1-math.Pow(.999, float64(t.steps))
	for i := range t.w {
		g := float32(0)
		for s := range shards {
			g += t.gradient[s][i]
		}
		g /= batch
		t.m[i] = .9*t.m[i] + .1*g
		t.v[i] = .999*t.v[i] + .001*g*g
		move := float64(t.m[i]) / c1 / (math.Sqrt(float64(t.v[i])/c2) + 1e-8)
		t.w[i] -= float32(rate * (move + t.opts.Decay*float64(t.w[i])))
	}
}

// net is the network as it is shipped.
func (t *trainer) net() *recall.Net {
	net := &recall.Net{Features: recall.FeatureNames(), Mean: t.mean, SD: t.sd, Linear: t.w[t.li:], Bias: t.w[t.bias:t.out], Output: t.w[t.out:t.li]}
	for u := range t.units {
		net.Hidden = append(net.Hidden, t.w[u*t.n:(u+1)*t.n])
	}
	return net
}

// shorten rounds all numbers to five decimals: the file is read and compared by people.
func shorten(n *recall.Net) {
	for _, list := range append([][]float32{n.Mean, n.SD, n.Linear, n.Bias, n.Output}, n.Hidden...) {
		for i, v := range list {
			list[i] = float32(math.Round(float64(v)*1e5) / 1e5)
		}
	}
	for i, v := range n.SD {
		n.SD[i] = max(v, 1e-4)
	}
}
