// Package schema writes types of state in other schema languages: Avro, JSON Schema, and
// the tables of Flink SQL.
//
//	text, err := json.Marshal(schema.Avro(t, "orders"))
//
// It knows types and no snapshots, and does no I/O.
package schema
