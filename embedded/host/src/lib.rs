//! The host end of fencegate: gate client and the fencegate command
