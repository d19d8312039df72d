package html

// page writes the page.
func (o *printer) page(v *view) {
	o.head(v)
	o.findings(v)
	o.bytes(v)
	o.unions(v)
	o.groups(v)
	o.trend(v.Trend)
	o.positions(v.Offsets)
	o.types(v.Schema)
	o.operators(v)
	o.put(`</main>
<footer><p>Made {} by spt {}. Everything on this page is from the snapshot; the page loads nothing.</p></footer>
<script>`, v.Made, v.Version)
	o.raw(script)
	o.put(`</script>
</body>
</html>
`)
}

// head writes what precedes the sections.
func (o *printer) head(v *view) {
	o.put(`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="{}">
<title>{} – spt report</title>
<style>`, v.Policy, v.Path)
	o.raw(style)
	o.put(`</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header>
<h1>{}</h1>
<p class="what">{}</p>
<p class="what">{}</p>
<p class="verdict {}"><span class="dot" aria-hidden="true"></span><strong>{}</strong></p>
<dl class="facts">`, v.Path, v.What, v.HowMuch, v.Soundness, v.Verdict)
	for _, f := range v.Facts {
		o.put("<div><dt>{}</dt><dd>{}</dd></div>", f.Name, f.Value)
	}
	o.put(`</dl>
<nav aria-label="Sections"><a href="#findings">Findings</a>`)
	if len(v.Maps) > 0 {
		o.put(` <a href="#bytes">Bytes</a>`)
	}
	if len(v.Unions) > 0 {
		o.put(` <a href="#unions">Union state</a>`)
	}
	if len(v.Groups) > 0 || v.MoreGroups != "" {
		o.put(` <a href="#groups">Key groups</a>`)
	}
	if v.Trend != nil {
		o.put(` <a href="#trend">Trend</a>`)
	}
	if v.Offsets != nil {
		o.put(` <a href="#positions">Positions</a>`)
	}
	if v.Schema != nil {
		o.put(` <a href="#types">Types</a>`)
	}
	o.put(` <a href="#operators">Operators</a></nav>
</header>
<main id="main">
`)
	if len(v.NotRead) > 0 {
		o.put(`<section class="partial" aria-label="Not read"><h2>Not read</h2><ul>`)
		o.items(v.NotRead)
		o.put("</ul></section>")
	}
}

// findings writes the section of findings.
func (o *printer) findings(v *view) {
	o.put(`
<section id="findings"><h2>Findings</h2>
`)
	if len(v.Findings) > 0 {
		o.put(`<ul class="notes">`)
		for _, f := range v.Findings {
			o.put(`<li class="{}"><p><span class="severity">{}</span> {}</p>`, f.Severity, f.Severity, f.Text)
			for _, text := range f.Examples {
				o.put(`<p class="where">{}</p>`, text)
			}
			for _, a := range f.Advice {
				o.put(`<p class="advice">{}`, a.Text)
				if a.Text != "" && a.Command != "" {
					o.put(": ")
				}
				if a.Command != "" {
					o.put("<code>{}</code>", a.Command)
				}
				o.put("</p>")
			}
			o.put("</li>")
		}
		o.put("</ul>")
	} else {
		o.put("<p>No findings.</p>")
	}
	o.more(v.MoreFindings)
	o.put("\n</section>\n")
}

// bytes writes the maps of bytes.
func (o *printer) bytes(v *view) {
	if len(v.Maps) == 0 {
		return
	}
	o.put(`<section id="bytes"><h2>Where the bytes are</h2>
<div class="tabs" role="tablist" aria-label="Bytes by" hidden>`)
	for _, m := range v.Maps {
		o.put(`<button role="tab" id="tab-{}" aria-controls="{}">{}</button>`, m.ID, m.ID, m.Title)
	}
	o.put(`</div>
`)
	for _, m := range v.Maps {
		o.put(`<div class="panel" id="{}"><h3>By {}</h3>
<svg class="map" role="img" aria-label="{}" width="100%" height="{}">`, m.ID, m.Title, m.About, m.Height)
		for _, in := range m.Tiles {
			o.tile(in)
		}
		o.put(`</svg>
`)
		if len(m.Legend) > 0 {
			o.put(`<ul class="legend">`)
			for _, text := range m.Legend {
				o.put(`<li><span class="key {}" aria-hidden="true"></span>{}</li>`, text.Class, text.Name)
			}
			o.put("</ul>")
		}
		o.put(`
<details><summary>The largest, in words</summary><div class="scroll" tabindex="0"><table><caption class="hide">The largest by {}</caption><thead><tr><th scope="col">What</th><th scope="col" class="n">Bytes</th><th scope="col" class="n">Share</th></tr></thead><tbody>`, m.Title)
		for _, x := range m.Largest {
			o.put(`<tr><th scope="row">{}</th><td class="n">{}</td><td class="n">{}</td></tr>`, x.Name, x.Size, x.Share)
		}
		o.put(`</tbody></table></div></details>
</div>`)
	}
	o.put(`
</section>`)
}

// unions writes the section of union state.
func (o *printer) unions(v *view) {
	if len(v.Unions) == 0 {
		return
	}
	o.put(`<section id="unions"><h2>Union state and the next restores</h2>
<p>At a restore, every subtask receives all elements of a union state. A job that adds them again multiplies the state by its parallelism each time; a job that keeps each element in one subtask does not.</p>
`)
	for _, u := range v.Unions {
		o.put(`<article><h3>{}/{} <span class="badge`, u.Operator, u.Name)
		if u.Look {
			o.put(" look")
		}
		o.put(`">{}</span></h3>
<p>{}</p>
`, u.Status, u.About)
		o.chart(u.Chart)
		o.put(`
<ul class="legend"><li><span class="key again" aria-hidden="true"></span>every subtask adds again what it receives</li><li><span class="key kept" aria-hidden="true"></span>each element is kept once</li><li>elements that a restore assigns, logarithmic</li></ul>
<div class="scroll" tabindex="0"><table><caption class="hide">What the next restores assign of {}</caption><thead><tr><th scope="col" class="n">Restore</th><th scope="col" class="n">Elements, added again</th><th scope="col" class="n">Bytes, added again</th><th scope="col" class="n">Elements, kept once</th></tr></thead><tbody>`, u.Name)
		for _, r := range u.Rows {
			o.put(`<tr><th scope="row" class="n">{}</th><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>`, r.Restore, r.Elements, r.Bytes, r.Kept)
		}
		o.put(`</tbody></table></div>
`)
		if u.Look {
			o.put(`<p class="advice">Keep one of each: <code>{}</code></p>`, u.Command)
		}
		o.put("</article>")
	}
	o.more(v.MoreUnions)
	o.put(`
</section>`)
}

// groups writes the section of key groups.
func (o *printer) groups(v *view) {
	if len(v.Groups) == 0 && v.MoreGroups == "" {
		return
	}
	o.put(`<section id="groups"><h2>Key groups</h2>
`)
	for _, g := range v.Groups {
		o.put(`<article class="groups" data-bytes="{}"><h3>{}</h3>
<p>{}`, g.Values, g.Operator, g.About)
		if g.Each > 1 {
			o.put(" A cell is {} key groups.", g.Each)
		}
		o.put(`</p>
<svg class="heat" role="img" aria-label="Heat map. {}" width="100%" height="{}">`, g.About, g.Height)
		for _, c := range g.Cells {
			o.put(`<rect class="h{}" x="{}%" y="{}" width="3.125%" height="14"><title>{}</title></rect>`, c.Shade, c.X, c.Y, c.Text)
		}
		o.put(`</svg>
<p class="slide"><label for="slide-{}">Parallelism</label> <input id="slide-{}" type="range" min="1" max="{}" value="{}" disabled> <output for="slide-{}" class="p">{}</output></p>
<p class="held" aria-live="polite">At parallelism {}: {}.</p>
<svg class="bars" role="img" aria-label="Bytes of each subtask at this parallelism" width="100%" height="90" viewBox="0 0 100 100" preserveAspectRatio="none"><path d="{}"/></svg>
</article>`, g.ID, g.ID, g.Max, g.Parallelism, g.ID, g.Parallelism, g.Parallelism, g.Subtasks, g.Bars)
	}
	o.more(v.MoreGroups)
	o.put(`
</section>`)
}

// trend writes the section of several snapshots, if there are several.
func (o *printer) trend(t *trend) {
	if t == nil {
		return
	}
	o.put(`<section id="trend"><h2>Trend</h2><p>{}, in their order. The rest of this page is about the last one.</p>
<div class="multiples">`, t.Span)
	for _, c := range t.Charts {
		o.put("<article><h3>{}</h3><p>{} → {}, {}</p>", c.Name, c.First, c.Last, c.Per)
		o.chart(c.Chart)
		o.put("</article>")
	}
	o.put(`</div>
`)
	o.more(t.Left)
	if len(t.LeftOut) > 0 {
		o.put("<p>Left out, because they cannot be read:</p><ul>")
		o.items(t.LeftOut)
		o.put("</ul>")
	}
	o.put(`
</section>`)
}

// positions writes the section of sources, if there are any.
func (o *printer) positions(p *offsets) {
	if p == nil {
		return
	}
	o.put(`<section id="positions"><h2>Positions of sources</h2>
`)
	if len(p.Rows) > 0 {
		o.put(`<div class="scroll" tabindex="0"><table><caption class="hide">Where sources read on after a restore</caption><thead><tr><th scope="col">Operator</th><th scope="col">Source</th><th scope="col">Topic</th><th scope="col">Partition</th><th scope="col" class="n">Position</th><th scope="col" class="n">Subtask</th><th scope="col"></th></tr></thead><tbody>`)
		for _, r := range p.Rows {
			o.put(`<tr><th scope="row">{}</th><td>{}</td><td>{}</td><td>{}</td><td class="n">{}</td><td class="n">{}</td><td>`, r.Operator, r.Connector, r.Topic, r.Partition, r.Position, r.Subtask)
			if r.Trouble != "" {
				o.put(`<span class="badge look">{}</span>`, r.Trouble)
			}
			o.put("</td></tr>")
		}
		o.put("</tbody></table></div>")
	}
	o.more(p.Left)
	if len(p.NotDecoded) > 0 {
		o.put("<p>Not decoded:</p><ul>")
		o.items(p.NotDecoded)
		o.put("</ul>")
	}
	o.put(`
</section>`)
}

// types writes the types of states, if they were read.
func (o *printer) types(s *schema) {
	if s == nil {
		return
	}
	o.put(`<section id="types"><h2>Types of states</h2>
`)
	for _, op := range s.Operators {
		o.put(`<details><summary>{} <span class="dim">{}</span></summary>
<ul class="tree">`, op.Name, op.Count)
		for _, n := range op.Keys {
			o.node(n)
		}
		for _, st := range op.States {
			o.put(`<li><b>{}</b> <span class="dim">{}</span><ul>`, st.Name, st.Kind)
			for _, n := range st.Tree {
				o.node(n)
			}
			o.put("</ul></li>")
		}
		for _, text := range op.Unread {
			o.put(`<li class="dim">{}</li>`, text)
		}
		o.put("</ul></details>")
	}
	o.more(s.Left)
	o.put(`
</section>`)
}

// operators writes the table of operators and states.
func (o *printer) operators(v *view) {
	o.put(`
<section id="operators"><h2>Operators and states</h2>
<div class="scroll" tabindex="0"><table><caption class="hide">Operators, largest first, and their states</caption><thead><tr><th scope="col">Operator / state</th><th scope="col">Kind</th><th scope="col">Type</th><th scope="col" class="n">Parallelism</th><th scope="col" class="n">Elements</th><th scope="col" class="n">Bytes</th><th scope="col" class="n">Share</th></tr></thead><tbody>`)
	for _, op := range v.Operators {
		o.put("<tr")
		if op.State {
			o.put(` class="state"`)
		}
		o.put(`><th scope="row">{}</th><td>{}</td><td class="type">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>`, op.Name, op.Kind, op.Type, op.Parallelism, op.Count, op.Size, op.Share)
	}
	o.put(`</tbody></table></div>
`)
	o.more(v.MoreOperators)
	o.put("</section>\n")
}

// tile writes a tile and those in it.
func (o *printer) tile(t tile) {
	o.put(`<svg x="{}" y="{}" width="{}" height="{}" class="tile {}"><title>{}: {}</title><rect width="100%" height="100%"/><text x="5" y="13">{}`, t.Percent(t.X), t.Percent(t.Y), t.Percent(t.W), t.Percent(t.H), t.Class, t.Label, t.Size, t.Label)
	if len(t.Tiles) > 0 {
		o.put(` <tspan class="dim">{}</tspan>`, t.Size)
	}
	o.put("</text>")
	if len(t.Tiles) > 0 {
		o.put(`<svg y="18" width="100%" height="{}">`, t.Inner())
		for _, in := range t.Tiles {
			o.tile(in)
		}
		o.put("</svg>")
	} else {
		o.put(`<text x="5" y="27" class="dim">{}</text>`, t.Size)
	}
	o.put("</svg>")
}

// chart writes lines in a frame.
func (o *printer) chart(c chart) {
	o.put(`<figure class="chart"><svg class="ticks" aria-hidden="true" height="130">`)
	for _, x := range c.Ticks {
		o.put(`<text x="66" y="{}%" dy="4" text-anchor="end">{}</text>`, x.At, x.Text)
	}
	o.put(`</svg>
<svg role="img" aria-label="{}" class="plot" height="130" viewBox="0 0 100 100" preserveAspectRatio="none">`, c.About)
	for _, x := range c.Ticks {
		o.put(`<path class="rule" d="M0 {}H100"/>`, x.At)
	}
	for _, l := range c.Lines {
		o.put(`<path class="line {}" d="{}"/>`, l.Class, l.Path)
	}
	o.put(`</svg>
<figcaption><span>{}</span><span>{}</span></figcaption></figure>`, c.First, c.Last)
}

// node writes a type and its parts.
func (o *printer) node(n *node) {
	o.put("<li>")
	if n.Label != "" {
		o.put("<b>{}</b> ", n.Label)
	}
	if n.Type != "" {
		o.put(`<span class="type">{}</span>`, n.Type)
	}
	if len(n.Parts) > 0 {
		o.put("<ul>")
		for _, part := range n.Parts {
			o.node(part)
		}
		o.put("</ul>")
	}
	o.put("</li>")
}

// more writes what is left out of a list; nothing for "".
func (o *printer) more(text string) {
	if text != "" {
		o.put(`<p class="more">{}</p>`, text)
	}
}

// items writes the items of a list.
func (o *printer) items(texts []string) {
	for _, text := range texts {
		o.put("<li>{}</li>", text)
	}
}
