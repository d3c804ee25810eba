(view) => {
  // The text is taken apart into lines as they were laid out; each becomes a text of the drawing.
  const round = (n) => Math.round(n * 10) / 10;
  const pen = document.createElement("canvas").getContext("2d");
  const lines = (node) => {
    const found = [], range = document.createRange();
    for (const { segment, index } of new Intl.Segmenter().segment(node.data)) {
      range.setStart(node, index); range.setEnd(node, index + segment.length);
      const box = range.getClientRects()[0];
      if (!box || segment === "\n") continue;
      const last = found.at(-1);
      if (last && Math.abs(last.y - box.y) < 3) { last.text += segment; if (segment.trim()) last.right = box.right; }
      else found.push({ text: segment, x: box.x, y: box.y, right: box.right });
    }
    return found;
  };
  const shapes = (root, x0, y0) => {
    const found = [];
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = root; node; node = walk.nextNode()) {
      const style = getComputedStyle(node.nodeType === 1 ? node : node.parentElement);
      if (node.nodeType === 1) {
        if (style.backgroundColor !== "rgba(0, 0, 0, 0)")
          for (const b of node.getClientRects())
            found.push({ x: round(b.x - x0), y: round(b.y - y0), w: round(b.width), h: round(b.height),
              r: parseFloat(style.borderRadius), fill: style.backgroundColor });
        continue;
      }
      pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      const up = pen.measureText("x").fontBoundingBoxAscent;
      for (const line of lines(node)) if (line.text.trim())
        found.push({ x: round(line.x - x0), y: round(line.y + up - y0), w: round(line.right - line.x), text: line.text,
          size: parseFloat(style.fontSize), bold: style.fontWeight >= 600, italic: style.fontStyle === "italic",
          mono: style.fontFamily.includes("mono"), fill: style.color });
    }
    return found;
  };
  return [...document.querySelectorAll(view)].map((root) => {
    const box = root.getBoundingClientRect();
    return { x: round(box.x), y: round(box.y), h: round(box.height), shapes: shapes(root, box.x, box.y) };
  });
}
