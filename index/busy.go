package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The log may be open in another program too, like the sqlite3 shell or a backup, which the store's
// own lock does not keep away. SQLite's own waiting heeds no context, so it is kept short and repeated.
const (
	busySlice    = 50 * time.Millisecond // what SQLite waits by itself
	busyPatience = 2 * time.Second       // what a write waits in all, or less where its context ends
)

// ErrBusy says that another program is writing to the log. Nothing was written; the call may be repeated.
var ErrBusy = errors.New("index: another program is writing to log.sqlite")

// isBusy reports that SQLite could not get a lock.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// patient runs a statement that needs the log's write lock, again as long as another program has the
// lock, within busyPatience and the ctx. The statement itself must not be bound to ctx: interrupting
// one costs a goroutine each.
func patient(ctx context.Context, try func() error) error {
	start := time.Now()
	for {
		err := try()
		if !isBusy(err) {
			return err
		}
		waited := time.Since(start)
		if cause := ctx.Err(); cause != nil {
			return fmt.Errorf("%w for %s already, and there is no more time: %w", ErrBusy, waited.Round(time.Millisecond), cause)
		}
		if waited > busyPatience {
			return fmt.Errorf("%w for %s already: end it, or try again when it is done", ErrBusy, waited.Round(time.Millisecond))
		}
	}
}

// begin starts a write transaction.
func begin(ctx context.Context, db *sql.DB) (tx *sql.Tx, err error) {
	quiet := context.WithoutCancel(ctx)
	err = patient(ctx, func() error {
		tx, err = db.BeginTx(quiet, nil)
		return err
	})
	return tx, err
}

// execute runs one writing statement.
func execute(ctx context.Context, db *sql.DB, stmt string, args ...any) (res sql.Result, err error) {
	quiet := context.WithoutCancel(ctx)
	err = patient(ctx, func() error {
		res, err = db.ExecContext(quiet, stmt, args...)
		return err
	})
	return res, err
}
