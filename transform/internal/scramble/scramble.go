// Package scramble replaces values by others of the same kind and encoded length. A
// [Key] defines one permutation for the values of each kind and length: equal values
// become equal, different ones stay different, and without the key nothing tells which
// value became which.
//
// The permutation is a Feistel network whose round function is AES-256 (CBC-MAC, then
// counter mode), with a key derived from the secret with HMAC-SHA-256: the
// construction of NIST SP 800-38G, for symbols of several radices.
package scramble

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"math"
)

// Key is the permutations of one secret. It is safe for concurrent use.
type Key struct{ block cipher.Block }

// New returns the permutations of a secret, which may be of any length.
func New(secret []byte) *Key {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("spt redaction 1"))
	block, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return &Key{block}
}

// domain separates the permutations of different kinds of values.
type domain byte

const (
	ofNumbers domain = iota
	ofNegative
	ofFloats
	ofFractions // of a second
	ofClocks
	ofTexts
	ofNames
	ofBytes
	ofChoices
)

// symbol is a digit of a value: 0 ≤ n < radix.
type symbol struct{ n, radix uint32 }

const rounds = 10

// permute replaces symbols. The permutation depends on the domain, the tweak, and the
// radices.
func (k *Key) permute(d domain, tweak uint64, s []symbol) {
	switch {
	case len(s) == 0:
		return
	case len(s) > 1:
		k.network(d, tweak, s)
		return
	}
	// One symbol becomes two, whose product of radices is larger: values outside are
	// permuted again.
	r := s[0].radix
	low := uint32(math.Ceil(math.Sqrt(float64(r))))
	pair := [2]symbol{{s[0].n / low, (r + low - 1) / low}, {s[0].n % low, low}}
	for r > 1 {
		k.network(d, tweak, pair[:])
		if n := pair[0].n*low + pair[1].n; n < r {
			s[0].n = n
			return
		}
	}
}

// network is the Feistel network: each half in turn is shifted by a function of the
// other.
func (k *Key) network(d domain, tweak uint64, s []symbol) {
	left, right := s[:len(s)/2], s[len(s)/2:]
	for round := range byte(rounds) {
		st := stream{k: k}
		from, to := right, left
		if round%2 == 1 {
			from, to = left, right
		}
		st.start(d, round, tweak, len(s), from)
		for i := range to {
			to[i].n = uint32((uint64(to[i].n) + uint64(st.next())) % uint64(to[i].radix))
		}
	}
}

// stream is the pseudorandom numbers that symbols determine.
type stream struct {
	k    *Key
	mac  [aes.BlockSize]byte
	out  [aes.BlockSize]byte
	used int // bytes of out
	n    uint32
}

// first absorbs what the numbers depend on besides the symbols.
func (s *stream) first(d domain, round byte, tweak uint64, n int) {
	s.mac[0], s.mac[1] = byte(d), round
	binary.BigEndian.PutUint32(s.mac[4:], uint32(n))
	binary.BigEndian.PutUint64(s.mac[8:], tweak)
	s.k.block.Encrypt(s.mac[:], s.mac[:])
	s.used = len(s.out)
}

func (s *stream) start(d domain, round byte, tweak uint64, n int, from []symbol) {
	s.first(d, round, tweak, n)
	at := 0
	add := func(b byte) {
		if s.mac[at] ^= b; at == len(s.mac)-1 {
			s.k.block.Encrypt(s.mac[:], s.mac[:])
			at = -1
		}
		at++
	}
	for _, x := range from {
		if x.radix > 1<<8 {
			add(byte(x.n >> 16))
			add(byte(x.n >> 8))
		}
		add(byte(x.n))
	}
	if at > 0 {
		s.k.block.Encrypt(s.mac[:], s.mac[:])
	}
}

// next returns the next number.
func (s *stream) next() uint32 {
	if s.used == len(s.out) {
		s.more()
		s.used = 0
	}
	n := binary.BigEndian.Uint32(s.out[s.used:])
	s.used += 4
	return n
}

// more computes the next numbers.
func (s *stream) more() {
	s.n++
	s.out = s.mac
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], s.n)
	subtle.XORBytes(s.out[:], s.out[:], n[:])
	s.k.block.Encrypt(s.out[:], s.out[:])
}

// wide replaces many bytes, by the same network with exclusive or.
func (k *Key) wide(p []byte) {
	left, right := p[:len(p)/2], p[len(p)/2:]
	for round := range byte(rounds) {
		from, to := right, left
		if round%2 == 1 {
			from, to = left, right
		}
		s := stream{k: k}
		s.first(ofBytes, round, 0, len(p))
		for len(from) > 0 {
			from = from[subtle.XORBytes(s.mac[:], s.mac[:], from[:min(len(from), len(s.mac))]):]
			k.block.Encrypt(s.mac[:], s.mac[:])
		}
		for len(to) > 0 {
			s.more()
			to = to[subtle.XORBytes(to, to, s.out[:]):]
		}
	}
}
