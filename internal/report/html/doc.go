// Package html writes what package report found about a snapshot as one page of HTML that
// needs nothing else: no network, no fonts, no libraries. Charts are SVG, drawn in
// place; a short script switches between them, moves a slider and opens what is folded
// before the page is printed. Without the script everything is on the page.
//
// All texts of a snapshot are escaped, and the page allows no other script than its own. Lists are cut, and end with how much is left out, so that the page
// stays below 1 MB however large the snapshot is.
package html
