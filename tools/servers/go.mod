module github.com/savepoint-tools/spt/tools/servers

go 1.26.0
