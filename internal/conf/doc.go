// Package conf reads the configurations that users of stream processors have.
package conf
