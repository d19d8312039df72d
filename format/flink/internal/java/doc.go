// Package java reads and writes the primitives of java.io.DataOutputStream,
// modified UTF-8, and finds the end of Java-serialized objects. It is the one
// low-level cursor of all Flink decoders.
//
//	c := java.NewCursor(p)
//	version := c.I32()
//	name := c.Text()
//	if err := c.Err(); err != nil { … }
package java
