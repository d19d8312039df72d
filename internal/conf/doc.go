// Package conf reads the configurations that users of stream processors have: those of
// Flink and of Hadoop.
package conf
