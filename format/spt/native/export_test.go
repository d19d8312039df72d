package native

// What tests of the package need and no program does.
var (
	Assemble    = assemble
	AppendEntry = appendEntry
	Hash        = hash
)

// StateParts is stateParts.
type StateParts = stateParts
