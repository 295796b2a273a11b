// Elements of a page, without markup from strings: what is shown is never read as HTML.

const SVG = 'http://www.w3.org/2000/svg';

export function element(name, settings = {}, ...children) {
  return filled(document.createElement(name), settings, children);
}

export function drawn(name, settings = {}, ...children) {
  return filled(document.createElementNS(SVG, name), settings, children);
}

function filled(node, settings, children) {
  for (const [key, value] of Object.entries(settings)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// 4 where all is true, down to 0 where less than a quarter is: the colour of a frame.
export function step(degree) {
  return degree === null || degree === undefined ? null : Math.floor(degree * 4 + 1e-6);
}
