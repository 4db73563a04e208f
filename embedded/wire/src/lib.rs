//! What goes over the cable to a fencing gate
