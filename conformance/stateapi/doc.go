// Package stateapi judges what spt reads of keyed state by Flink's State Processor API:
// its entries of snapshots of older releases, and its SQL tables. It has only tests. They
// need a JDK and Maven.
package stateapi
