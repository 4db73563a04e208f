//! Nothing at all: what an image weighs without the core.

#![no_std]
#![no_main]

fencegate_bare::image!(nothing);

const fn nothing() {}
