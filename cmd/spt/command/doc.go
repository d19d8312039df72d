// Package command is the command line of spt: one file per command, each with
// its options, its constructor and the function that does the work.
//
// Commands know no format. They open snapshots with reader, write them with
// writer, compute one result value, and render it with internal/ui. What they
// share stands in env.go (where output goes), flags.go (what every command
// takes), pick.go (choosing operators and states), names.go (foreign text) and
// exit.go (errors and exit codes).
package command
