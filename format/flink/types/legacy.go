package types

func legacyCodec(m *maker, s *Snapshot) codec { return m.fail(s, NoLayout) }
