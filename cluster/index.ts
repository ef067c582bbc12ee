// The public face of the cluster library. It is empty until nodes can join: see README.md.
export {}
