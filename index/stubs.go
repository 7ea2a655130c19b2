package index

import (
	"context"

	"hark/index/terms"
)

type Store struct{}
type View struct{}

func Open(ctx context.Context, dir string, opts *Options) (*Store, error) { return nil, ErrClosed }
func (s *Store) Append(ctx context.Context, b Batch) (Appended, error) {
	return Appended{}, ErrClosed
}
func (s *Store) Match(ctx context.Context, q []WeightedTerm, f Filter, k int) (Matches, error) {
	return Matches{}, ErrClosed
}
func (s *Store) Nearest(ctx context.Context, space Space, v []float32, f Filter, k int) (Neighbours, error) {
	return Neighbours{}, ErrClosed
}
func (s *Store) Cosines(ctx context.Context, space Space, v []float32, seqs []int64) ([]float64, error) {
	return nil, ErrClosed
}
func (s *Store) Get(ctx context.Context, seqs ...int64) ([]Message, error)   { return nil, ErrClosed }
func (s *Store) Find(ctx context.Context, ids ...string) ([]Message, error)  { return nil, ErrClosed }
func (s *Store) Lookup(ctx context.Context, keys ...string) ([]int64, error) { return nil, ErrClosed }
func (s *Store) Session(ctx context.Context, session string, after int64, limit int) ([]Message, error) {
	return nil, ErrClosed
}
func (s *Store) Sessions(ctx context.Context) ([]SessionInfo, error) { return nil, ErrClosed }
func (s *Store) View() *View                                         { return nil }
func (v *View) Close()                                               {}
func (v *View) Row(seq int64) (Row, bool)                            { return Row{}, false }
func (v *View) Doc(seq int64) (terms.Doc, bool)                      { return terms.Doc{}, false }
func (v *View) Around(seq int64, before, after int) (prev, next []int64) {
	return nil, nil
}
func (v *View) Episode(seq int64) *Episode { return nil }
func (v *View) Stats() Stats               { return Stats{} }
func (s *Store) Pending(ctx context.Context, space Space, limit int) ([]Message, error) {
	return nil, ErrClosed
}
func (s *Store) PendingCount(ctx context.Context, space Space) (int, error) { return 0, ErrClosed }
func (s *Store) SetVectors(ctx context.Context, space Space, vs []Vector) error {
	return ErrClosed
}
func (s *Store) UseSpace(ctx context.Context, space Space) error        { return ErrClosed }
func (s *Store) Forget(ctx context.Context, sel Selection) (int, error) { return 0, ErrClosed }
func (s *Store) State(ctx context.Context, bucket, key string) ([]byte, error) {
	return nil, ErrClosed
}
func (s *Store) SetState(ctx context.Context, bucket, key string, value []byte) error {
	return ErrClosed
}
func (s *Store) Check(ctx context.Context) (Report, error)  { return Report{}, ErrClosed }
func (s *Store) Status(ctx context.Context) (Status, error) { return Status{}, ErrClosed }
func (s *Store) Close() error                               { return nil }
