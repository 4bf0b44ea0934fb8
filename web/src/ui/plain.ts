/** What people and programs wrote, made harmless to read: nothing in it moves, hides or turns other text. */

// Letters that turn the direction of what stands beside them: a name may look like another one with them.
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

const codePoint = (letter: string): string => `⟦U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`;

/** Control characters have pictures of their own: ␛ for escape. */
function picture(letter: string): string {
  const code = letter.charCodeAt(0);
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : codePoint(letter);
}

/** The same text, with every letter seen that would not be. */
export const plain = (text: string): string => text.replace(CONTROLS, picture).replace(BIDI, codePoint);
