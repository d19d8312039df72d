// Package conf reads the configurations that users of stream processors have: of
// Flink and of Hadoop.
package conf
