package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/storage/web"
)

// webDriver reads files of web servers.
func webDriver() driver {
	return driver{schemes: []string{"http", "https"}, open: func(env *Env) (route.Scheme, error) {
		return web.New(web.Options{Retried: env.retried()}).Resolve, nil
	}}
}

// hideSecrets replaces the URLs in arguments and flags that have a password or a query
// string by the names that their store has for them. Whatever prints an argument then
// prints no secret.
func (e *Env) hideSecrets(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	for i := range args {
		if strings.HasPrefix(cmd.Use, "hash ") {
			break // a uid can look like a URL
		}
		if err := e.hideSecret(ctx, &args[i]); err != nil {
			return err
		}
	}
	hide := func(f *pflag.Flag, value *string) error {
		before := ""
		switch what, _ := pflag.UnquoteUsage(f); what {
		case "FILE", "DIR", "URI", "SP", "SNAPSHOT", "BASE", "B", "PREFIX":
		case "OLD=NEW":
			if i := strings.Index(strings.ToLower(*value), "=http"); i >= 0 && f.Name == "map" {
				before, *value = (*value)[:i+1], (*value)[i+1:]
				break
			}
			return nil
		default:
			return nil // no location
		}
		err := e.hideSecret(ctx, value)
		*value = before + *value
		return err
	}
	var failed error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if failed != nil {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			all := list.GetSlice()
			for i := range all {
				if failed = hide(f, &all[i]); failed != nil {
					return
				}
			}
			failed = list.Replace(all)
			return
		}
		value := f.Value.String()
		if failed = hide(f, &value); failed == nil && value != f.Value.String() {
			failed = f.Value.Set(value)
		}
	})
	return failed
}

// hideSecret replaces a value that is a URL with secrets.
func (e *Env) hideSecret(ctx context.Context, value *string) error {
	lower := strings.ToLower(*value)
	if !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") || !strings.ContainsAny(*value, "?@") {
		return nil
	}
	_, name, err := e.Stores.Resolve(ctx, *value)
	if err != nil {
		return err
	}
	*value = name
	return nil
}
