/** A folder with the unpacked release of Node's own project for this platform, of the pinned version; undefined where there is none. */
export const officialNode: string | undefined = process.env.RUNYARD_TEST_NODE_RELEASE
