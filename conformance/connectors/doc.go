// Package connectors judges package format/flink/connector by Flink's connectors: their
// own serializers write vectors and read what spt wrote, and a Kafka broker shows where
// a restored source reads on and what a restored sink commits. It has only tests. They
// need a JDK and Maven.
package connectors
