package recall

// Weights are the constants of the ranking formula. They were found by coordinate search on
// nine public retrieval sets (chats, assistant logs, tool-using agents, meetings, code search,
// three languages) with one setting for all; hark eval run --without NAME shows what each part is worth.
type Weights struct {
	K1     float64 // BM25 saturation of term frequency
	B      float64 // length normalisation of the whole message
	PassB  float64 // length normalisation of a passage
	Pad    float64 // words added to every length, so that two-word messages do not win
	Pass   float64 // share of the best passage against the whole message
	IdfPow float64 // exponent of idf

	Word, Ident, Han, HanPair, Phrase, Gram float64 // term classes
	Instruction                             float64 // factor for words that address the assistant

	Caption, Sender, Date float64 // fields against the text

	Context       float64 // share of the neighbours' terms
	ContextDecay  float64 // per step of distance
	ContextB      float64 // length normalisation of the neighbourhood
	ContextLen    float64 // words at which a message borrows half
	ContextReach  int     // neighbours on each side
	AfterQuestion float64 // extra weight of a question directly before

	Session  float64 // share of the episode's BM25
	SessionB float64 // its length normalisation

	Role        float64 // extra for people where the assistant writes much longer
	Question    float64 // cut for messages that only ask, where both sides speak alike
	NamedSender float64 // extra where the question names who said it

	Dense       float64 // weight of the vector leg against the words
	DenseCov    float64 // exponent of the share of the question's words the model knows
	DenseSmooth float64 // share of the neighbours' cosines

	Look float64 // share of what the network adds to the fused score; 0 does without it

	// The log lift of neighbours' overlap up to which neighbours tell nothing, and how much more
	// it takes until they count fully. The lift is sampled: unrelated texts show up to 1.3.
	CohesionNone, CohesionFull float64

	// Candidates of each leg, and how many of the lexical ones bring their neighbours. 300, 200
	// and all gave the same to .2 points on five sets, for twice the time.
	LexicalPool, DensePool, NeighbourPool int
}

// DefaultWeights is the one configuration for every kind of conversation.
func DefaultWeights() Weights {
	return Weights{
		K1: 0.9, B: 0.2, PassB: 0.75, Pad: 20, Pass: 0.75, IdfPow: 1.2,
		Word: 1, Ident: 2, Han: 0.1, HanPair: 1, Phrase: 0.35, Gram: 0.2, Instruction: 0.25,
		Caption: 0.5, Sender: 2, Date: 1.5,
		Context: 0.5, ContextDecay: 0.8, ContextB: 0.4, ContextLen: 80, ContextReach: 3, AfterQuestion: 2,
		Session: 0.3, SessionB: 1,
		Role: 0.5, Question: 0.3, NamedSender: 0.2,
		Dense: 0.5, DenseCov: 4, DenseSmooth: 0.7,
		Look:         0.7,
		CohesionNone: 0.15, CohesionFull: 0.3,
		LexicalPool: 200, DensePool: 100, NeighbourPool: 100,
	}
}

func (w *Weights) class(c uint8) float64 {
	return [...]float64{w.Word, w.Ident, w.Han, w.HanPair, w.Phrase, w.Gram}[c]
}
