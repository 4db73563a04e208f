// UF2: an image as blocks of 512 bytes, each with the address of its 256.

const BLOCK = 512;
const MAGIC = [0x0a324655, 0x9e5d5157, 0x0ab16f30];
/** Flag: a block that is not for the main flash. */
const NOT_MAIN = 0x0000_0001;

/**
 * Calls `load` for each block of an image.
 *
 * @param {Uint8Array} image the file
 * @param {(address: number, bytes: Uint8Array) => void} load
 * @throws where it is none
 */
export function load(image, load) {
  if (image.length === 0 || image.length % BLOCK !== 0) {
    throw new Error(`no UF2 image: ${image.length} bytes are no whole number of blocks`);
  }
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
  for (let at = 0; at < image.length; at += BLOCK) {
    const word = (/** @type {number} */ offset) => view.getUint32(at + offset, true);
    if (word(0) !== MAGIC[0] || word(4) !== MAGIC[1] || word(BLOCK - 4) !== MAGIC[2]) {
      throw new Error(`no UF2 image: block ${at / BLOCK} has other magic numbers`);
    }
    const [flags, address, length] = [word(8), word(12), word(16)];
    if (length > BLOCK - 36) throw new Error(`UF2 block ${at / BLOCK}: ${length} bytes do not fit`);
    if (!(flags & NOT_MAIN)) load(address, image.subarray(at + 32, at + 32 + length));
  }
}
