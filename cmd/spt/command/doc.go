// Package command is the command line of spt. Each command has a file with its flags,
// their validation, its help and its exit codes. Package report builds the answers, and
// package ui renders them.
//
// Commands read, write and look up everything through [Env], so that tests can replace
// it. What commands share is in env.go, flags.go (flags of all commands), pick.go
// (selecting operators and states), write.go (options of writing), advice.go (what to do
// next) and exit.go (errors and exit codes).
package command
