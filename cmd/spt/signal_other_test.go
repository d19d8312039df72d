//go:build !unix

package main

func signalled() { panic("signals are sent on unix only") }
