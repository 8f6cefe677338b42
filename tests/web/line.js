// The other end of a panel's line: it keeps what is sent, and answers when the test says so.

import { deflateSync } from "node:zlib";

/** A value as Python packs it. */
export const packed = (value) => new DataView(Uint8Array.from(deflateSync(JSON.stringify(value))).buffer);

export class Line {
  sent = [];
  gone = false;
  #listeners = [];

  on(_event, listener) {
    this.#listeners.push(listener);
  }

  send(content) {
    if (this.gone) throw new Error("the kernel is gone");
    this.sent.push(content);
  }

  /** Answers a question; every view of the panel hears it. */
  answer(question, value) {
    for (const listener of this.#listeners) listener({ number: question.number }, [packed(value)]);
  }

  fail(question, error) {
    for (const listener of this.#listeners) listener({ number: question.number, error }, []);
  }
}
