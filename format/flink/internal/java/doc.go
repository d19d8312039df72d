// Package java reads and writes the primitives of java.io.DataOutputStream and
// modified UTF-8, and finds the end of Java-serialized objects. All Flink decoders
// use its cursor. It does not deserialize objects.
//
//	c := java.NewCursor(p)
//	version := c.I32()
//	name := c.Text()
//	if err := c.Err(); err != nil { … }
package java
