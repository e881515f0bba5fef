// Command rooms holds the house's rules that no other linter knows: which room
// may import which, that every package and exported name is documented, and
// that every file of the kernel side names its licence. It prints file:line, the
// rule and what broke it, and exits 1 where something did. It looks at the
// source alone: it builds nothing and knows no types.
package main
