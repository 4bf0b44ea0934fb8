"""What a browser measures of the page that it shows: scripts that it is asked to run."""

# Every text that is seen, with its colours: what lies behind it is gathered from its ancestors.
TEXTS = """() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const paper = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      paper.clearRect(0, 0, 1, 1);
      paper.fillStyle = colour;
      paper.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = paper.getImageData(0, 0, 1, 1).data;
      known.set(colour, [red, green, blue, alpha / 255]);
    }
    return known.get(colour);
  };
  const over = (top, below) =>
    [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = ([red, green, blue]) =>
    0.2126 * linear(red / 255) + 0.7152 * linear(green / 255) + 0.0722 * linear(blue / 255);
  const isSeen = (element) => {
    const { width, height } = element.getBoundingClientRect();
    const asked = { opacityProperty: true, visibilityProperty: true };
    if (element.closest("script, style, noscript, option, .skip")) return false;
    if (element.closest(":disabled, [aria-disabled=true]")) return false;
    return element.checkVisibility(asked) && width >= 2 && height >= 2;
  };
  const behind = (element) => {
    const line = [];
    for (let one = element; one; one = one.parentElement) line.unshift(one);
    return line.reduce(
      (below, one) => over(rgba(getComputedStyle(one).backgroundColor), below),
      [255, 255, 255, 1],
    );
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (text === "" || !isSeen(element)) continue;
    const style = getComputedStyle(element);
    const page = behind(element);
    const [a, b] = [light(over(rgba(style.color), page)), light(page)];
    found.push({
      text: text.slice(0, 40),
      where: element.className?.baseVal ?? element.className,
      size: parseFloat(style.fontSize),
      drawn: element.closest(".react-flow__viewport") !== null,
      faded: element.closest(".faded, .stopped") !== null,
      contrast: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
    });
  }
  return found;
}"""

# What of the bar, of the tabs, of a run's name and of the page does not fit into the window.
CUT = """() => {
  const seen = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0;
  const place = (one) => one.getBoundingClientRect();
  const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
  const end = place(document.querySelector(".bar-end")).left;
  const pages = all(".bar nav :is(a, button)").filter((one) => place(one).right > end + 0.5);
  const parts = all(".bar nav a, .bar nav button, .bar-end > *, .brand");
  const out = ({ left, right }) => left < 0 || right > innerWidth + 0.5;
  const outside = parts.filter((one) => out(place(one)));
  const tabs = all(".view-toggles").filter((one) => one.scrollWidth > one.clientWidth + 1);
  const names = all(".run-title h1").filter((one) => one.scrollWidth > one.clientWidth + 1);
  const wide = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
  return [...pages, ...outside, ...tabs, ...names].map((one) => one.textContent).concat(wide);
}"""

# How lists to choose from, and sliders, look.
CHOICES = """() => {
  const seen = [...document.querySelectorAll("select, input[type=range]")];
  return seen.filter((one) => one.checkVisibility()).map((one) => {
    const { appearance, borderRadius, borderColor } = getComputedStyle(one);
    const kind = one.tagName === "SELECT" ? "SELECT" : "RANGE";
    return [kind, `${appearance} ${borderRadius} ${borderColor}`];
  });
}"""

# Which labels stand on one another, or are cut: the box of a label is that of its letters.
TOUCHING = """(selector) => {
  const letters = (one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return range.getBoundingClientRect();
  };
  const found = [];
  for (const row of document.querySelectorAll("[role=row]")) {
    const all = [...row.querySelectorAll(selector)].filter((one) => one.checkVisibility());
    const boxes = all.map((one) => [one, letters(one)]).filter(([, box]) => box.width > 0);
    boxes.forEach(([one, a], place) => {
      const { width } = one.parentElement.getBoundingClientRect();
      if (getComputedStyle(one).overflowX !== "visible" && a.width > width + 0.5)
        found.push(`${one.textContent} is cut`);
      for (const [other, b] of boxes.slice(place + 1)) {
        const beside = a.right <= b.left + 0.5 || b.right <= a.left + 0.5;
        const below = a.bottom <= b.top + 0.5 || b.bottom <= a.top + 0.5;
        if (!beside && !below) found.push(`${one.textContent} on ${other.textContent}`);
      }
    });
  }
  return found;
}"""
