/**
 * A folder with the unpacked official release of Node for this platform, in the pinned version;
 * undefined without one.
 */
export const officialNode: string | undefined = process.env.RUNYARD_TEST_NODE_RELEASE
