// A document whose elements keep what they are given, and on whose canvas every character is ten pixels wide. Import it
// before what makes elements or measures texts.

class Element {
  style = {};
  attributes = {};
  children = [];
  #text = "";

  constructor(tag) {
    this.tag = tag;
  }

  set textContent(text) {
    this.#text = text;
  }

  /** What is read on the page. */
  get textContent() {
    return this.#text + this.children.map((child) => child.textContent ?? child).join("");
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  addEventListener() {}

  append(...children) {
    this.children.push(...children);
  }

  /** Elements inside with this attribute, in the order of the page. */
  having(name, value) {
    const inside = this.children.flatMap((child) => (child instanceof Element ? child.having(name, value) : []));
    return this.attributes[name] === value ? [this, ...inside] : inside;
  }

  getContext() {
    return { font: "", measureText: (text) => ({ width: 10 * text.length }) };
  }
}

globalThis.document = { createElement: (tag) => new Element(tag) };
