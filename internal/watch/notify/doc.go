// Package notify sends events as JSON to a webhook, one after another, and again if that
// fails for a reason that passes. It does not know what the events mean.
//
//	n := notify.New(notify.Options{URL: url})
//	n.Send(body)
//	n.Close(ctx)
package notify
