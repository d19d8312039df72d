package command

import (
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/storage/web"
)

// webDriver reads files of web servers.
func webDriver() driver {
	return driver{[]string{"http", "https"}, func(*Env) (route.Scheme, error) {
		return web.New(web.Options{}).Resolve, nil
	}}
}
