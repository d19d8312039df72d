package command

import (
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/storage/web"
)

// webDriver reads files of web servers.
func webDriver() driver {
	return driver{schemes: []string{"http", "https"}, open: func(env *Env) (route.Scheme, error) {
		return web.New(web.Options{Retried: env.retried()}).Resolve, nil
	}}
}
