import {
  GraphQLFloat,
  type GraphQLInputType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  isListType,
  isNonNullType,
  Kind,
  type TypeNode,
  type ValidationContext,
  type ValidationRule,
  VariablesInAllowedPositionRule,
} from 'graphql'

/**
 * The rule of GraphQL for the types of variables, except that a variable of type Int is valid wherever a Float is
 * taken, like a whole number in the document. The public API has Int for some numbers that are Floats here.
 */
export const variableTypesRule: ValidationRule = context => VariablesInAllowedPositionRule(widened(context))

type Usages = ReturnType<ValidationContext['getRecursiveVariableUsages']>

/** The same context, in which each place of a Float that an Int variable takes is one of an Int. */
function widened(context: ValidationContext): ValidationContext {
  const getRecursiveVariableUsages: ValidationContext['getRecursiveVariableUsages'] = operation => {
    const given = new Map(operation.variableDefinitions?.map(({ variable, type }) => [variable.name.value, type]))
    return context.getRecursiveVariableUsages(operation).map((usage): Usages[number] => {
      const type = intIn(usage.type, given.get(usage.node.name.value))
      return type === null ? usage : { ...usage, type }
    })
  }
  return Object.create(context, { getRecursiveVariableUsages: { value: getRecursiveVariableUsages } })
}

/** The type of a place with Int in place of Float, where the variable is an Int in as many lists; null elsewhere. */
function intIn(place: Usages[number]['type'], given: TypeNode | undefined): GraphQLInputType | null {
  if (!place || given === undefined) return null
  if (isNonNullType(place)) {
    const inner = intIn(place.ofType, given)
    return inner === null ? null : new GraphQLNonNull(inner as Exclude<GraphQLInputType, GraphQLNonNull<never>>)
  }
  if (given.kind === Kind.NON_NULL_TYPE) return intIn(place, given.type)
  if (isListType(place)) {
    const inner = given.kind === Kind.LIST_TYPE ? intIn(place.ofType, given.type) : null
    return inner === null ? null : new GraphQLList(inner)
  }
  return place === GraphQLFloat && given.kind === Kind.NAMED_TYPE && given.name.value === 'Int' ? GraphQLInt : null
}
