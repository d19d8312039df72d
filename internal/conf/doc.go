// Package conf reads the configuration files of other programs that say how storage is
// reached. It reads nothing but the files that it is told of.
package conf
