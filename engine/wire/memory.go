package wire

import (
	"context"
	"errors"

	"hark/engine"
)

// Memory answers the memory tools of one agent: engine.Memory. Its parameters and results are those of
// the wire.
type Memory interface {
	Search(ctx context.Context, p engine.MemorySearchParams) (engine.MemoryResults, error)
	Get(ctx context.Context, p engine.MemoryGetParams) (engine.MemoryText, error)
	Status(ctx context.Context, c engine.Corpora) (engine.MemoryStatus, error)
	Sync(ctx context.Context, p engine.MemorySyncParams) (engine.MemorySynced, error)
	Authorize(ctx context.Context, p engine.MemoryAuthorizeParams) (engine.MemoryAllowed, error)
	Classify(ctx context.Context, p engine.MemoryClassifyParams) (engine.MemoryClasses, error)
	Open(ctx context.Context, p engine.OpenParams) (engine.Opened, error)
	ForgetOne(ctx context.Context, p engine.ForgetOneParams) (engine.ForgottenOne, error)
}

var _ Memory = (*engine.Memory)(nil)

// memoryMethod looks up a method of the memory tools. Like those of the lifecycle its calls may create
// the agent's store.
func memoryMethod(name string) (func(context.Context, *call) (any, error), bool) {
	switch name {
	case "memorySearch":
		return remembering(Memory.Search), true
	case "memoryGet":
		return remembering(Memory.Get), true
	case "memoryStatus":
		return remembering(Memory.Status), true
	case "memorySync":
		return remembering(Memory.Sync), true
	case "memoryAuthorize":
		return remembering(Memory.Authorize), true
	case "memoryClassify":
		return remembering(Memory.Classify), true
	case "open":
		return remembering(Memory.Open), true
	case "forgetOne":
		return remembering(Memory.ForgetOne), true
	}
	return nil, false
}

// remembering makes a call of a method.
func remembering[P, R any](method func(Memory, context.Context, P) (R, error)) func(context.Context, *call) (any, error) {
	return func(ctx context.Context, c *call) (any, error) {
		if c.agent.Memory == nil {
			return nil, &Error{Code: CodeUnknown, Message: "this daemon serves no memory tools"}
		}
		var p P
		if err := decode(c.body, &p); err != nil {
			return nil, err
		}
		out, err := method(c.agent.Memory, ctx, p)
		var wrong *engine.RequestError
		switch {
		case errors.As(err, &wrong):
			return nil, &Error{Code: CodeBadRequest, Message: wrong.Reason}
		case err != nil:
			return nil, err
		}
		return out, nil
	}
}
