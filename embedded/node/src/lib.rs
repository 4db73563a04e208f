//! The fencing gate: state machine, store, dead man's switch
