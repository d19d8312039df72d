// Package fault lets a test run code before each system call with which the local
// store changes the disk: to count it, make it fail, or end the process. Only
// tests set a hook.
//
// For faults above the local store, storetest wraps any store.
//
//	ctx = fault.With(ctx, func(ctx context.Context, call, name string) error {
//		if calls++; calls == n {
//			return syscall.ENOSPC
//		}
//		return nil
//	})
package fault

import "context"

// Hook is called before each system call, with its context, its name and the path that it
// changes. If it returns an error, the call is not made. It must be safe for concurrent
// use.
type Hook func(ctx context.Context, call, name string) error

type key struct{}

// With returns a context under which hook is called before each system call.
func With(ctx context.Context, hook Hook) context.Context {
	return context.WithValue(ctx, key{}, hook)
}

// At calls the hook of ctx, if any.
func At(ctx context.Context, call, name string) error {
	if hook, ok := ctx.Value(key{}).(Hook); ok {
		return hook(ctx, call, name)
	}
	return nil
}
