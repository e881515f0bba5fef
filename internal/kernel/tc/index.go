package tc

// An id tells a qdisc or class from all others of its link.
type id struct {
	class  bool
	handle uint32
}

func (e entry) id() id { return id{e.isClass(), e.handle} }

// An index finds entries by what they are: a link can have thousands.
type index map[id]entry

// index leaves out what is beside the root, which find does not find either.
func (all entries) index() index {
	have := make(index, len(all))
	for _, e := range all {
		if _, twice := have[e.id()]; !twice && !e.besideRoot() {
			have[e.id()] = e
		}
	}
	return have
}

// htbClass decodes an HTB class; ok is false where there is none.
func (have index) htbClass(handle uint32) (o htbClass, ok bool, err error) {
	e, ok := have[id{true, handle}]
	if !ok || e.kind != "htb" {
		return htbClass{}, false, nil
	}
	decoded, err := decodeHTBClass(e.options)
	if err != nil {
		return htbClass{}, false, err
	}
	return decoded.(htbClass), true, nil
}
