package opstate

// ParseEnvelope walks an envelope, for tests: its length and what it says of
// each state.
func ParseEnvelope(p []byte) (size int, states [][]byte, err error) {
	e, err := parseEnvelope(p)
	if err != nil {
		return 0, nil, err
	}
	for _, s := range e.states {
		states = append(states, s.bytes)
	}
	return e.size, states, nil
}
