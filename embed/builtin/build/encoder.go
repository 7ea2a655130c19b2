package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
)

// Shape of the Universal Sentence Encoder Lite: a transformer of two layers whose first is narrower.
const (
	embedDim   = 256
	modelDim   = 512
	hiddenDim  = 1536
	heads      = 4
	maxTokens  = 128
	wordsBatch = 64
)

// encoder is the model, ready for its forward pass.
type encoder struct {
	tokens     *tokenizer
	embeddings matrix
	timing     []float32 // angular frequency of each pair of position components
	widen      linear    // 256 -> 512, the residual path around the first layer
	layers     [2]layer
	final      linear
}

type layer struct {
	attendNorm, feedNorm   norms
	qkv, project, in, back linear
}

type linear struct {
	weights matrix
	bias    []float32
}

func (l linear) apply(x matrix) matrix { return affine(x, l.weights, l.bias) }

type norms struct{ scale, bias []float32 }

// readEncoder reads the weights in their tfjs form (a manifest and shards of little-endian float32) and the vocabulary.
func readEncoder(archivePath string) (*encoder, error) {
	var model struct {
		WeightsManifest []struct {
			Paths   []string
			Weights []tensorInfo
		}
	}
	var e encoder
	shards := map[string][]byte{}
	err := eachFile(archivePath, func(name string, r io.Reader) (err error) {
		switch base := path.Base(name); {
		case base == "model.json":
			err = json.NewDecoder(r).Decode(&model)
		case base == "vocab.json":
			e.tokens, err = readTokenizer(r)
		case strings.HasPrefix(base, "group1-shard"):
			shards[base], err = io.ReadAll(r)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(model.WeightsManifest) != 1 || e.tokens == nil {
		return nil, fmt.Errorf("%s lacks the model or its vocabulary", archivePath)
	}
	var blob []byte
	for _, p := range model.WeightsManifest[0].Paths {
		blob = append(blob, shards[p]...)
	}
	tensors, err := slice(blob, model.WeightsManifest[0].Weights)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archivePath, err)
	}
	return &e, e.assemble(tensors)
}

type tensorInfo struct {
	Name  string
	Shape []int
	Dtype string
}

// slice cuts the blob into its float32 tensors; the int32 ones are graph constants, skipped.
func slice(blob []byte, infos []tensorInfo) (map[string][]float32, error) {
	out := map[string][]float32{}
	for _, t := range infos {
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		if len(blob) < 4*n {
			return nil, fmt.Errorf("weights end inside %s", t.Name)
		}
		if t.Dtype == "float32" {
			values := make([]float32, n)
			for i := range values {
				values[i] = math.Float32frombits(binary.LittleEndian.Uint32(blob[4*i:]))
			}
			out[t.Name] = values
		}
		blob = blob[4*n:]
	}
	return out, nil
}

// assemble names the tensors' places. The graph keeps some weights as variables ("module/") and others folded
// ("module_apply_default/").
func (e *encoder) assemble(tensors map[string][]float32) error {
	var missing []string
	get := func(name string, n int) []float32 {
		t := tensors[name]
		if len(t) != n {
			missing = append(missing, fmt.Sprintf("%s (%d values, want %d)", name, len(t), n))
			return make([]float32, n)
		}
		return t
	}
	lin := func(weights, bias string, in, out int) linear {
		return linear{matrix{in, out, get(weights, in*out)}, get(bias, out)}
	}
	const (
		variable = "module/Encoder_en/KonaTransformer/Encode/"
		folded   = "module_apply_default/Encoder_en/KonaTransformer/Encode/"
		whole    = "/ConcatPartitions/concat"
	)
	e.embeddings = matrix{8002, embedDim, get("module/Embeddings_en", 8002*embedDim)}
	e.timing = get(folded+"TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1", embedDim/2)
	dense := folded + "Layer_0/TransformerLayer/dense/"
	e.widen = lin(dense+"kernel"+whole, dense+"bias"+whole, embedDim, modelDim)
	for i := range e.layers {
		at := fmt.Sprintf("Layer_%d/TransformerLayer/", i)
		width := modelDim
		if i == 0 {
			width = embedDim
		}
		norm := func(where string, n int) norms {
			p := folded + at + where + "layer_prepostprocess/layer_norm/layer_norm_"
			return norms{get(p+"scale"+whole, n), get(p+"bias"+whole, n)}
		}
		attend := func(name string, out int) linear {
			p := at + "MultiheadAttention/" + name + "_transform_single/"
			return lin(variable+p+"kernel/part_0", folded+p+"bias"+whole, width, out)
		}
		feed := func(name string, in, out int) linear {
			return lin(folded+"TransformerStack/"+at+"FFN/"+name+"/Tensordot/Reshape_1", folded+at+"FFN/"+name+"/bias"+whole, in, out)
		}
		e.layers[i] = layer{
			attendNorm: norm("", width),
			feedNorm:   norm("FFN/", modelDim),
			qkv:        attend("qkv", 3*width),
			project:    attend("output", modelDim),
			in:         feed("conv1", modelDim, hiddenDim),
			back:       feed("conv2", hiddenDim, modelDim),
		}
	}
	tanh := "module/Encoder_en/hidden_layers/tanh_layer_0/"
	e.final = lin(tanh+"weights", tanh+"bias", modelDim, modelDim)
	if missing != nil {
		return fmt.Errorf("the model has not the expected tensors: %s", strings.Join(missing, ", "))
	}
	return nil
}
