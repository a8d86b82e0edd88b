/** Which of several servers on one database runs the loops. A single server always leads. */
export interface Leader {
  isLeader(): boolean
}
