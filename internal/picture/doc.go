// Package picture computes the geometry of charts: treemaps, lines, bars and grids of
// cells. Its functions are pure: numbers in, coordinates out. Package internal/report/html
// draws them as SVG.
package picture

// Rect is a rectangle. Y grows downwards, as in SVG.
type Rect struct{ X, Y, W, H float64 }

// Area returns the area of the rectangle.
func (r Rect) Area() float64 { return r.W * r.H }

// Point is a position in a frame.
type Point struct{ X, Y float64 }
